-- What a post says it answers is as long as its author likes: a B-tree would refuse to hold it, and with it the post.
DROP INDEX objects_answers;
CREATE INDEX objects_answers ON objects USING hash ((raw ->> 'inReplyTo')) WHERE raw ->> 'inReplyTo' IS NOT NULL;
