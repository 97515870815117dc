"""The steps of a customer: a session, and the steps of a submission."""
