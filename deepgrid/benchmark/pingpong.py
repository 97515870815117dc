"""Runs under mpirun with the nodes' own Python, one rank per node. It does not import deepgrid.

Prints `key value` lines. Between the first two nodes: the one-way time of 4 MiB and of one byte (microseconds, half the
median round trip), and the rate of 4 MiB messages in both directions at once (MB/s, their sum). Among all nodes: the
median time of an all-to-all of 1 MiB and of 8 bytes for each pair (microseconds).
"""

from statistics import median

from mpi4py import MPI  # type: ignore[import-not-found]

LARGE_BYTES, ALL_BYTES, LARGE_ROUNDS = 4 * 2**20, 2**20, 20
SMALL_ROUNDS = 500

world = MPI.COMM_WORLD
rank = world.Get_rank()


def round_trip_s(size: int, rounds: int) -> float:
    """Median time for `size` bytes from rank 0 to rank 1 and back."""
    message = bytearray(size)
    times = []
    for _ in range(rounds + rounds // 5):
        began = MPI.Wtime()
        if rank == 0:
            world.Send([message, MPI.BYTE], dest=1)
            world.Recv([message, MPI.BYTE], source=1)
        elif rank == 1:
            world.Recv([message, MPI.BYTE], source=0)
            world.Send([message, MPI.BYTE], dest=0)
        times.append(MPI.Wtime() - began)
    return float(median(times[rounds // 5 :]))  # the first messages open connections


def both_ways_s(size: int, rounds: int) -> float:
    """Median time until ranks 0 and 1 have sent `size` bytes to each other at the same time."""
    outgoing, incoming = bytearray(size), bytearray(size)
    times = []
    for _ in range(rounds + rounds // 5):
        world.Barrier()
        began = MPI.Wtime()
        if rank < 2:
            world.Sendrecv([outgoing, MPI.BYTE], dest=1 - rank, recvbuf=[incoming, MPI.BYTE], source=1 - rank)
        times.append(MPI.Wtime() - began)
    return float(median(times[rounds // 5 :]))


def all_to_all_s(size: int, rounds: int) -> float:
    """Median time until every rank has sent `size` bytes to every other rank."""
    outgoing, incoming = bytearray(size * world.Get_size()), bytearray(size * world.Get_size())
    times = []
    for _ in range(rounds + rounds // 5):
        world.Barrier()
        began = MPI.Wtime()
        world.Alltoall([outgoing, size, MPI.BYTE], [incoming, size, MPI.BYTE])
        times.append(MPI.Wtime() - began)
    return float(median(times[rounds // 5 :]))


one_byte_s = round_trip_s(1, SMALL_ROUNDS)
large_s = round_trip_s(LARGE_BYTES, LARGE_ROUNDS)
both_s = both_ways_s(LARGE_BYTES, LARGE_ROUNDS)
everybody_s = all_to_all_s(8, SMALL_ROUNDS)
everybody_large_s = all_to_all_s(ALL_BYTES, LARGE_ROUNDS)
if rank == 0:
    print("network.p2p.latency.us", large_s / 2 * 1e6)
    print("network.p2p.latency.1b.us", one_byte_s / 2 * 1e6)
    print("network.p2p.bw.mbps", 2 * LARGE_BYTES / both_s / 1e6)
    print("network.all-to-all.latency.us", everybody_large_s * 1e6)
    print("network.all-to-all.latency.8b.us", everybody_s * 1e6)
