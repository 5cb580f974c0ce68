DROP TABLE feed_marks;
