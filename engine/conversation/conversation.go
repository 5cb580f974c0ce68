// Package conversation is about MLS groups, and about which types of objects must be encrypted.
package conversation
