"""The parts of operator, providers and customers on the one machine: keys, blocks, pools, deployments, processes."""
