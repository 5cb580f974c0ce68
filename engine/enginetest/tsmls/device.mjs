// A device of a user: a client of MLS whose keys never leave it. It has one signature key, and the
// state of each group that it is in. Messages go in and out as base64.

import { join } from "node:path";
import { argv } from "node:process";
import { pathToFileURL } from "node:url";

const load = (file) => import(pathToFileURL(join(argv[2], "node_modules/ts-mls/dist/src", file)).href);
const mls = await load("index.js");
const { encodeKeyPackage, decodeKeyPackage, makeKeyPackageRef } = await load("keyPackage.js");
const { createGroupInfoWithRatchetTree } = await load("createCommit.js");
const { defaultClientConfig } = await load("clientConfig.js");

const suite = await mls.getCiphersuiteImpl(mls.getCiphersuiteFromName("MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519"));
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
const infoOf = async (state) => encode({
  wireformat: "mls_group_info",
  groupInfo: await createGroupInfoWithRatchetTree(state.groupContext, state.confirmationTag, state, state.ratchetTree, [], suite),
});

/** The actor of each leaf. */
const membersOf = (state) => Object.fromEntries(state.ratchetTree.flatMap((node, index) => (node?.nodeType === "leaf" ? [[index / 2, text(node.leaf.credential.identity)]] : [])));

export class Device {
  #credential;
  #key;
  #packages = new Map(); // by their references
  #groups = new Map(); // the state of each, by its id
  #pending = new Map(); // the state that a commit of ours would lead to

  static async make({ identity }) {
    const device = new Device();
    device.#credential = { credentialType: "basic", identity: bytes(identity) };
    device.#key = await suite.signature.keygen();
    return device;
  }

  async keyPackage({ days = 30 } = {}) {
    const now = BigInt(Math.floor(Date.now() / 1000));
    const lifetime = { notBefore: now - 3600n, notAfter: now + BigInt(days) * 86400n };
    const made = await mls.generateKeyPackageWithKey(this.#credential, mls.defaultCapabilities(), lifetime, [], this.#key, suite);
    const reference = base64(await makeKeyPackageRef(made.publicPackage, suite.hash));
    this.#packages.set(reference, made);
    return { content: base64(encodeKeyPackage(made.publicPackage)), reference };
  }

  async create({ group }) {
    const { reference } = await this.keyPackage();
    const { publicPackage, privatePackage } = this.#packages.get(reference);
    this.#packages.delete(reference);
    this.#groups.set(group, await mls.createGroup(bytes(group), publicPackage, privatePackage, [], suite, config));
    return { groupInfo: await infoOf(this.#groups.get(group)) };
  }

  /** Makes a commit, which changes nothing here before it is merged. */
  async commit({ group, add = [], remove = [], isPrivate = false }) {
    const state = { ...this.#in(group), unappliedProposals: {} }; // by value, not by reference
    const proposals = [
      ...add.map((content) => ({ proposalType: "add", add: { keyPackage: decodePackage(content) } })),
      ...remove.map((removed) => ({ proposalType: "remove", remove: { removed } })),
    ];
    const made = await mls.createCommit({ state, cipherSuite: suite }, { wireAsPublicMessage: !isPrivate, extraProposals: proposals, ratchetTreeExtension: true });
    this.#pending.set(group, made.newState);
    const welcomes = made.welcome ? [encode({ wireformat: "mls_welcome", welcome: made.welcome })] : [];
    return { commit: encode(made.commit), groupInfo: await infoOf(made.newState), welcomes };
  }

  merge({ group }) {
    if (!this.#pending.has(group)) throw new Error("there is no commit to merge");
    this.#groups.set(group, this.#pending.get(group));
    this.#pending.delete(group);
    return this.state({ group });
  }

  /** Joins by a Welcome, with the key package that it names. */
  async join({ welcome }) {
    const { welcome: decoded } = decode(welcome, "mls_welcome");
    const reference = decoded.secrets.map(({ newMember }) => base64(newMember)).find((r) => this.#packages.has(r));
    if (!reference) throw new Error("the Welcome names no key package of this device");
    const { publicPackage, privatePackage } = this.#packages.get(reference);
    const state = await mls.joinGroup(decoded, publicPackage, privatePackage, mls.emptyPskIndex, suite, undefined, undefined, config);
    const group = text(state.groupContext.groupId);
    this.#groups.set(group, state);
    return { group, ...(await this.state({ group })) };
  }

  /** Asks to be removed. */
  async leave({ group }) {
    const state = this.#in(group);
    const made = await mls.createProposal(state, true, { proposalType: "remove", remove: { removed: state.privatePath.leafIndex } }, suite);
    this.#groups.set(group, made.newState);
    return { message: encode(made.message) };
  }

  async encrypt({ group, plaintext }) {
    const made = await mls.createApplicationMessage(this.#in(group), bytes(plaintext), suite);
    this.#groups.set(group, made.newState);
    return { message: encode({ wireformat: "mls_private_message", privateMessage: made.privateMessage }) };
  }

  /** Applies a commit or a proposal of another device, or decrypts its message. */
  async process({ group, message }) {
    const decoded = decode(message, "mls_private_message", "mls_public_message");
    const done = await mls.processMessage(decoded, this.#in(group), mls.emptyPskIndex, mls.acceptAll, suite);
    this.#groups.set(group, done.newState);
    if (done.kind === "applicationMessage") return { plaintext: text(done.message) };
    if (done.newState.groupContext.epoch !== (decoded.publicMessage?.content ?? decoded.privateMessage).epoch) this.#pending.delete(group);
    return this.state({ group });
  }

  /** What the devices of a group compare: the epoch, its members and a secret of the epoch. */
  async state({ group }) {
    const state = this.#in(group);
    const secret = await mls.mlsExporter(state.keySchedule.exporterSecret, "lightweb test", new Uint8Array(), 32, suite);
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
