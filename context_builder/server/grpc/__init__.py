"""The services of context packages over gRPC, with the credentials of HTTP. In: services, an authenticator, a port."""
