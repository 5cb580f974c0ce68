DROP TABLE requests, correspondents;
