// Runs devices for a test. Each line of standard input is a call as JSON, and each line of
// standard output is the answer to a call. See README.md.

import { createInterface } from "node:readline";
import { stdin, stdout } from "node:process";
import { Device } from "./device.mjs";

const calls = ["keyPackage", "create", "commit", "merge", "join", "leave", "encrypt", "process", "restart", "state"];
const devices = new Map();

async function answer({ device, call, args }) {
  if (call === "make") {
    devices.set(device, await Device.make(args));
    return {};
  }
  if (!calls.includes(call) || !devices.has(device)) throw new Error(`there is no call ${call}, or no device ${device}`);
  return devices.get(device)[call](args);
}

for await (const line of createInterface({ input: stdin })) {
  const said = await answer(JSON.parse(line)).catch(({ message }) => ({ error: message || "it failed" }));
  stdout.write(JSON.stringify(said) + "\n");
}
