DROP TABLE search_progress, search_index;
