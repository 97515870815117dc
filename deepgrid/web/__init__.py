"""The web app's backend: pages, relay, checks, and the local signer of `dps web`."""
