DROP TABLE poison, idempotency_keys, audit, event_outbox, deliveries, delivery_jobs, group_members, groups, reactions,
    feed, relationships, tombstones, seen, activities, objects, actors;
