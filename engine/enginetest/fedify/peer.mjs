// An ActivityPub server made with Fedify, for interop tests. See README.md.

import "./packages.mjs";
import { env, stderr, stdin, stdout } from "node:process";

const { Journal } = await import("./journal.mjs");
const { listen } = await import("./traffic.mjs");
const { createPeer } = await import("./federation.mjs");
const { createControl } = await import("./control.mjs");

const KNOCKS = ["rfc9421", "draft-cavage-http-signatures-12"];
const firstKnock = env.FIRST_KNOCK || KNOCKS[0];
if (!KNOCKS.includes(firstKnock)) throw new Error(`FIRST_KNOCK is ${firstKnock}; use ${KNOCKS.join(" or ")}`);

const journal = new Journal({ debug: env.LOG === "debug", print: (line) => stderr.write(line + "\n") });
process.on("unhandledRejection", (reason) => journal.fail("unhandled rejection", reason));
process.on("uncaughtException", (error) => {
  journal.fail("uncaught exception", error);
  process.exit(1);
});
await journal.attach();

const server = await listen({ port: Number(env.PORT ?? 0), journal });
const peer = await createPeer({
  origin: server.origin,
  firstKnock,
  rsaBits: Number(env.RSA_BITS || 2048),
  names: (env.ACTORS || "bob").split(","),
  journal,
});
server.serve({ control: createControl({ peer, journal }), federation: peer.fetch });

for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(0));
if (env.EXIT_WITH_STDIN) stdin.on("end", () => process.exit(0)).resume();
stdout.write(JSON.stringify({ origin: server.origin }) + "\n");
