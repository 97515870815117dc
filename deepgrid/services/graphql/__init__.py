"""The job service's GraphQL, for clients that were written for the original grid.

`POST /graphql` takes jobs without a signature. `schema.graphql` is made from the models of the workflow language, and
jobs are checked like workflow files, with the same messages. `documents` bounds what strangers may ask,
`cross_origin` lets pages of all origins ask.
"""

from deepgrid.services.graphql.cross_origin import CrossOrigin
from deepgrid.services.graphql.routes import router

__all__ = ["CrossOrigin", "router"]
