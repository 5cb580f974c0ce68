-- A record of an action says what the action was about, and no words: those would outlive the post that they were in. Texts
-- among the parameters that records have from before are removed.
UPDATE audit SET params = coalesce((SELECT jsonb_object_agg(key, value) FROM jsonb_each(params)
    WHERE key IN ('actorUri', 'objectId', 'activityId', 'recipientUri', 'inReplyTo', 'to', 'cc', 'visibility', 'sensitive', 'name', 'lightweb:leftOut')), '{}')
WHERE params <> '{}';
