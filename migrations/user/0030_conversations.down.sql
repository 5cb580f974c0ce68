DROP TABLE mls_welcomes;
DROP TABLE mls_log;
DROP TABLE mls_conversations;
DROP TABLE conversation_members;
DROP TABLE conversations;
