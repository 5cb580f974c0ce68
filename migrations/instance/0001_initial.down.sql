DROP TABLE intake, hosts, tokens, actor_keys, actors, acquaintances, users;
