DROP INDEX objects_answers;
