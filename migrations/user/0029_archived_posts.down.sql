DROP TABLE archived_posts;
