package cmd

import (
	"context"

	"github.com/spf13/cobra"
)

func newConfig(a *app) *cobra.Command {
	return newGroup("config", "Settings", "config shows and checks the settings: what flags, environment and configuration file come to.", newConfigShow(a), newConfigCheck(a))
}

// shownSetting is a setting with the value that is in effect.
type shownSetting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin origin `json:"origin"`
}

// shownConfig is the result of config show.
type shownConfig struct {
	File     string         `json:"file,omitempty"`
	Settings []shownSetting `json:"settings"`
}

func newConfigShow(a *app) *cobra.Command {
	var withOrigin bool
	c := &cobra.Command{
		Use:   "show [flags]",
		Short: "Show the settings that hold",
		Long: "show lists every setting with its value; a secret is shown as REDACTED. --origin also shows the\n" +
			"origin of each value: a flag, the environment, a line of the configuration file, or the default.\n" +
			"JSON always has the origin.",
		Example: "  lightweb config show --origin",
		Args:    takesArgs(),
		RunE: a.action(func(context.Context, []string) error {
			c, err := a.config()
			if err != nil {
				return err
			}
			doc := shownConfig{File: c.file}
			var facts []fact
			var rows [][]string
			for _, s := range settings {
				shown := shownSetting{s.key, s.at(c).String(), c.originOf(s.key)}
				doc.Settings = append(doc.Settings, shown)
				facts = append(facts, fact{key: s.key, value: shown.Value})
				rows = append(rows, []string{shown.Key, shown.Value, string(shown.Origin)})
			}
			if withOrigin {
				return a.out.writeTable([]string{"SETTING", "VALUE", "ORIGIN"}, rows, doc)
			}
			return a.out.writeFacts("settings", facts, doc)
		}),
	}
	c.Flags().BoolVar(&withOrigin, "origin", false, "show where each value comes from")
	return c
}
