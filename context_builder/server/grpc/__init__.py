"""The services of context packages are hosted over gRPC. In: services, an authenticator, a port."""
