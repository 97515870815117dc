"""Fetches the output of a job from the bucket or the web address that its workflow names.

A file is whole when it has its name: until then it is a `.part` file, which the next attempt continues. No name leaves
the target folder. Credentials and addresses appear in no error and no log line of the client.
"""

from deepgrid.client.download.outputs import download_output, output_of

__all__ = ["download_output", "output_of"]
