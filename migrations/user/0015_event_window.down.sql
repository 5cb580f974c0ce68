DROP TABLE event_window;
