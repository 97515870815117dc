"""The job service's GraphQL, for clients that were written for the original grid.

`POST /graphql` takes jobs without a signature (`routes`). `schema.graphql` is made from the models of the workflow
language, and jobs are checked like workflow files, with the same messages. `operations` runs in processes of its own,
and `documents` bounds what strangers may ask there.
"""
