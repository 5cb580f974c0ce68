ALTER INDEX ended_activities_pkey RENAME TO ended_follows_pkey;
ALTER TABLE ended_activities RENAME TO ended_follows;
