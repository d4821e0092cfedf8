"""A credential identifies a caller with a tenant and roles. In: a bearer token. Out: a caller, or none.

API keys are kept as hashes in the database, JWTs are verified by a JWKS, the local token is a file of this user.
"""
