// Makes the names of npm packages resolve to the folder that `install` filled. Import this file
// before any file that needs those packages. Import such files with import(), because static
// imports are resolved before this file runs.

import { registerHooks } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { env } from "node:process";
import { pathToFileURL } from "node:url";

const dir = env.LIGHTWEB_FEDIFY_DIR || join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "lightweb-fedify");
const parentURL = pathToFileURL(join(dir, "package.json")).href;
const here = new URL(".", import.meta.url).href;

registerHooks({
  resolve(specifier, context, next) {
    const ours = context.parentURL?.startsWith(here);
    const isPackage = !/^([./]|node:|file:)/.test(specifier);
    return next(specifier, ours && isPackage ? { ...context, parentURL } : context);
  },
});
