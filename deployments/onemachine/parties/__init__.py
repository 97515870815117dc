"""What operator, providers and customers have on the one machine: keys, blocks, pools, deployments, processes."""
