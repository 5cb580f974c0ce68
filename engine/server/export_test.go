package server

// Held returns how many bytes of bodies count as in memory.
func (s *Server) Held() int64 {
	s.bodies.mu.Lock()
	defer s.bodies.mu.Unlock()
	return s.bodies.all
}

// HoldAtMost bounds them.
func (s *Server) HoldAtMost(bytes int64) {
	s.bodies.mu.Lock()
	defer s.bodies.mu.Unlock()
	s.bodies.most = bytes
}
