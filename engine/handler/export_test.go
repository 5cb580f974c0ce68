package handler

// Lasting are the types that Undo does not take back.
var Lasting = lasting

// Types returns the types of activity that have a handler.
func (r *Registry) Types() []string {
	var types []string
	for k := range r.handlers {
		types = append(types, k.Type)
	}
	return types
}
