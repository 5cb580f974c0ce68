DROP TABLE event_groups;
