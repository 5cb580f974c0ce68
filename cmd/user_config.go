package cmd

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

func newUserConfig(a *app) *cobra.Command {
	return newGroup("config", "Read and change the settings of a user", "config reads, changes and checks the config.json of a user: profile, follow policy, who may read and write. The file may\n"+
		"be edited by hand, too. A running engine follows every change within a second, and sends followers\n"+
		"an Update of the profile once the file has rested for 5 s; after a start, of what was changed meanwhile.",
		newUserConfigGet(a), newUserConfigSet(a), newUserConfigEdit(a), newUserConfigCheck(a))
}

// writeMember returns a value in the form that user config set accepts: a string as it is, other
// values as JSON.
func writeMember(value any) (string, error) {
	doc, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("write the value: %w", err)
	}
	var text string
	if json.Unmarshal(doc, &text) == nil { // every string type is a string in JSON
		return text, nil
	}
	return string(doc), nil
}
