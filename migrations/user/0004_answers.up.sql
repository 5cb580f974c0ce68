-- Whether an answer to a post is stored is asked for every old post at each pruning, which the GIN index answers too slowly.
CREATE INDEX objects_answers ON objects ((raw ->> 'inReplyTo')) WHERE raw ->> 'inReplyTo' IS NOT NULL;
