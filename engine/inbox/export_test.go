package inbox

// Waiting returns how many activities are queued or being committed.
func (i *Inbox) Waiting() int {
	i.writers.mu.Lock()
	defer i.writers.mu.Unlock()
	return i.writers.waiting
}

// Limit bounds how many may be.
func (i *Inbox) Limit(n int) {
	i.writers.mu.Lock()
	defer i.writers.mu.Unlock()
	i.writers.limit = n
}
