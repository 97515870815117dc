"""Discrete-event simulation of the grid, to compare policies of the meta-scheduler.

A policy is called with the pending jobs and the market, as in a real round. Inside each cluster, all
policies get the same first-come-first-served queue with EASY backfill. A run depends only on the
workload, the clusters, the policy and its seed: repeating it gives the same results.
"""
