DROP INDEX objects_answers;
CREATE INDEX objects_answers ON objects ((raw ->> 'inReplyTo')) WHERE raw ->> 'inReplyTo' IS NOT NULL;
