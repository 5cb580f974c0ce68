// A device of a user: an MLS client whose keys never leave it. It has one signature key, and the
// state of each group that it is in. Messages enter and leave the device as base64.

import { createECDH, createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { join } from "node:path";
import { argv } from "node:process";
import { pathToFileURL } from "node:url";

const load = (file) => import(pathToFileURL(join(argv[2], "node_modules/ts-mls/dist/src", file)).href);
const mls = await load("index.js");
const { encodeKeyPackage, decodeKeyPackage, makeKeyPackageRef } = await load("keyPackage.js");
const { createGroupInfoWithRatchetTree } = await load("createCommit.js");
const { defaultClientConfig } = await load("clientConfig.js");
const { makeHpke } = await load("crypto/implementation/default/makeHpke.js");

const ed25519 = await mls.getCiphersuiteImpl(mls.getCiphersuiteFromName("MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519"));
const p256 = mls.getCiphersuiteFromName("MLS_128_DHKEMP256_AES128GCM_SHA256_P256");

/** The signatures of suite 2 by Node.js. Those of ts-mls need a package more, and compress the keys. */
const p256Signature = (form) => ({
  keygen: () => {
    const pair = createECDH("prime256v1");
    const publicKey = new Uint8Array(pair.generateKeys(null, form));
    return { publicKey, signKey: new Uint8Array(Buffer.concat([Buffer.alloc(32), pair.getPrivateKey()]).subarray(-32)) };
  },
  sign: (signKey, message) => {
    const pair = createECDH("prime256v1");
    pair.setPrivateKey(signKey);
    const key = { ...jwk(pair.getPublicKey()), d: Buffer.from(signKey).toString("base64url") };
    return new Uint8Array(sign("sha256", message, createPrivateKey({ key, format: "jwk" })));
  },
  verify: (publicKey, message, signature) => verify("sha256", message, createPublicKey({ key: jwk(Buffer.from(publicKey)), format: "jwk" }), signature),
});
const jwk = (point) => ({ kty: "EC", crv: "P-256", x: point.subarray(1, 33).toString("base64url"), y: point.subarray(33).toString("base64url") });

const suiteOf = async (number, form) => (number === 1 ? ed25519 : { ...ed25519, name: p256.name, hpke: await makeHpke(p256.hpke), signature: p256Signature(form) });
const config = { ...defaultClientConfig, keyRetentionConfig: { ...defaultClientConfig.keyRetentionConfig, retainKeysForEpochs: 5 } };

const text = (bytes) => new TextDecoder().decode(bytes);
const bytes = (string) => new TextEncoder().encode(string);
const base64 = (bytes) => Buffer.from(bytes).toString("base64");
const unbase64 = (string) => new Uint8Array(Buffer.from(string, "base64"));
const encode = (content) => base64(mls.encodeMlsMessage({ version: "mls10", ...content }));

function decode(message, ...formats) {
  const raw = unbase64(message);
  const [decoded, length] = mls.decodeMlsMessage(raw, 0) ?? [];
  if (length !== raw.length || !formats.includes(decoded.wireformat)) throw new Error(`this is not ${formats.join(" or ")}`);
  return decoded;
}

function decodePackage(content) {
  const raw = unbase64(content);
  const [decoded, length] = decodeKeyPackage(raw, 0) ?? [];
  if (length !== raw.length) throw new Error("this is not a bare key package");
  return decoded;
}

/** The GroupInfo of the epoch that a state is in, with the ratchet tree and without external_pub. */
const infoOf = async (state, suite) => encode({
  wireformat: "mls_group_info",
  groupInfo: await createGroupInfoWithRatchetTree(state.groupContext, state.confirmationTag, state, state.ratchetTree, [], suite),
});

/** Returns the actor of each leaf. */
const membersOf = (state) => Object.fromEntries(state.ratchetTree.flatMap((node, index) => (node?.nodeType === "leaf" ? [[index / 2, text(node.leaf.credential.identity)]] : [])));

export class Device {
  #suite;
  #credential;
  #key;
  #packages = new Map(); // key packages by their references
  #groups = new Map(); // states of groups by the groups' ids
  #pending = new Map(); // the state of each group after our commit, while the commit waits to be merged

  /** Makes a device whose groups all have one suite. */
  static async make({ identity, suite = 1, isCompressed = false }) {
    const device = new Device();
    device.#suite = await suiteOf(suite, isCompressed ? "compressed" : "uncompressed");
    device.#credential = { credentialType: "basic", identity: bytes(identity) };
    device.#key = await device.#suite.signature.keygen();
    return device;
  }

  async keyPackage({ days = 30 } = {}) {
    const now = BigInt(Math.floor(Date.now() / 1000));
    const lifetime = { notBefore: now - 3600n, notAfter: now + BigInt(days) * 86400n };
    const made = await mls.generateKeyPackageWithKey(this.#credential, mls.defaultCapabilities(), lifetime, [], this.#key, this.#suite);
    const reference = base64(await makeKeyPackageRef(made.publicPackage, this.#suite.hash));
    this.#packages.set(reference, made);
    return { content: base64(encodeKeyPackage(made.publicPackage)), reference };
  }

  async create({ group }) {
    const { reference } = await this.keyPackage();
    const { publicPackage, privatePackage } = this.#packages.get(reference);
    this.#packages.delete(reference);
    this.#groups.set(group, await mls.createGroup(bytes(group), publicPackage, privatePackage, [], this.#suite, config));
    return { groupInfo: await infoOf(this.#groups.get(group), this.#suite) };
  }

  /** Makes a commit. The state of the device changes only when the commit is merged. */
  async commit({ group, add = [], remove = [], isPrivate = false }) {
    const state = { ...this.#in(group), unappliedProposals: {} }; // commits carry their proposals themselves, not references to earlier ones
    const proposals = [
      ...add.map((content) => ({ proposalType: "add", add: { keyPackage: decodePackage(content) } })),
      ...remove.map((removed) => ({ proposalType: "remove", remove: { removed } })),
    ];
    const made = await mls.createCommit({ state, cipherSuite: this.#suite }, { wireAsPublicMessage: !isPrivate, extraProposals: proposals, ratchetTreeExtension: true });
    this.#pending.set(group, made.newState);
    const welcomes = made.welcome ? [encode({ wireformat: "mls_welcome", welcome: made.welcome })] : [];
    return { commit: encode(made.commit), groupInfo: await infoOf(made.newState, this.#suite), welcomes };
  }

  merge({ group }) {
    if (!this.#pending.has(group)) throw new Error("there is no commit to merge");
    this.#groups.set(group, this.#pending.get(group));
    this.#pending.delete(group);
    return this.state({ group });
  }

  /** Joins a group by a Welcome, with the key package that the Welcome names. */
  async join({ welcome }) {
    const { welcome: decoded } = decode(welcome, "mls_welcome");
    const reference = decoded.secrets.map(({ newMember }) => base64(newMember)).find((r) => this.#packages.has(r));
    if (!reference) throw new Error("the Welcome names no key package of this device");
    const { publicPackage, privatePackage } = this.#packages.get(reference);
    const state = await mls.joinGroup(decoded, publicPackage, privatePackage, mls.emptyPskIndex, this.#suite, undefined, undefined, config);
    const group = text(state.groupContext.groupId);
    this.#groups.set(group, state);
    return { group, ...(await this.state({ group })) };
  }

  /** Makes a proposal to remove this device. */
  async leave({ group }) {
    const state = this.#in(group);
    const made = await mls.createProposal(state, true, { proposalType: "remove", remove: { removed: state.privatePath.leafIndex } }, this.#suite);
    this.#groups.set(group, made.newState);
    return { message: encode(made.message) };
  }

  async encrypt({ group, plaintext }) {
    const made = await mls.createApplicationMessage(this.#in(group), bytes(plaintext), this.#suite);
    this.#groups.set(group, made.newState);
    return { message: encode({ wireformat: "mls_private_message", privateMessage: made.privateMessage }) };
  }

  /** Applies a commit or a proposal of another device, or decrypts its message. */
  async process({ group, message }) {
    const decoded = decode(message, "mls_private_message", "mls_public_message");
    const done = await mls.processMessage(decoded, this.#in(group), mls.emptyPskIndex, mls.acceptAll, this.#suite);
    this.#groups.set(group, done.newState);
    if (done.kind === "applicationMessage") return { plaintext: text(done.message) };
    if (done.newState.groupContext.epoch !== (decoded.publicMessage?.content ?? decoded.privateMessage).epoch) this.#pending.delete(group);
    return this.state({ group });
  }

  /** Starts anew, with no more than the bytes that it stores of each group. */
  restart() {
    for (const [group, state] of this.#groups) {
      const stored = mls.encodeGroupState(state);
      const [loaded, length] = mls.decodeGroupState(stored, 0) ?? [];
      if (length !== stored.length) throw new Error("this is not the state of a group");
      this.#groups.set(group, { ...loaded, clientConfig: config });
    }
    this.#pending.clear();
    return {};
  }

  /** What the devices of a group compare: the epoch, its members and a secret of the epoch. */
  async state({ group }) {
    const state = this.#in(group);
    const secret = await mls.mlsExporter(state.keySchedule.exporterSecret, "lightweb test", new Uint8Array(), 32, this.#suite);
    return {
      epoch: Number(state.groupContext.epoch),
      members: membersOf(state),
      leaf: state.privatePath.leafIndex,
      secret: base64(secret),
      isActive: state.groupActiveState.kind === "active",
    };
  }

  #in(group) {
    const state = this.#groups.get(group);
    if (!state) throw new Error(`this device is not in the group ${group}`);
    return state;
  }
}
