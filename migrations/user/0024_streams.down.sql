DROP TABLE stream_objects;
DROP TABLE streams;
