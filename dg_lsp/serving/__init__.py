"""The processes behind the sockets: the engine's own, a team's server, replicas on Ray."""
