// HTTP in both directions. The journal records each request.

import { createServer } from "node:http";

const plainFetch = globalThis.fetch;

// listen binds 127.0.0.1 at once, so that the origin is known early. Requests that arrive before
// the returned function serve is called wait.
export async function listen({ port, journal }) {
  let start;
  const handlers = new Promise((resolve) => (start = resolve));
  const server = createServer(async (message, response) => {
    try {
      const { control, federation } = await handlers;
      const request = await toRequest(message);
      const answer = new URL(request.url).pathname.startsWith("/control/")
        ? await control(request)
        : await observe(request, federation, journal);
      response.writeHead(answer.status, [...answer.headers].flat());
      response.end(Buffer.from(await answer.arrayBuffer()));
    } catch (error) {
      journal.fail(`${message.method} ${message.url}`, error);
      if (!response.headersSent) response.writeHead(500);
      response.end();
    }
  });
  await new Promise((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
  globalThis.fetch = (input, init) => observedFetch(input, init, journal);
  return { origin: `http://127.0.0.1:${server.address().port}`, serve: start };
}

// toRequest trusts the Host header, as a server behind a proxy does. The signed @authority and
// @target-uri depend on this header.
async function toRequest(message) {
  const headers = new Headers();
  for (let i = 0; i < message.rawHeaders.length; i += 2) headers.append(message.rawHeaders[i], message.rawHeaders[i + 1]);
  const chunks = [];
  for await (const chunk of message) chunks.push(chunk);
  const hasBody = message.method !== "GET" && message.method !== "HEAD";
  return new Request(new URL(message.url, `http://${message.headers.host}`), {
    method: message.method,
    headers,
    body: hasBody ? Buffer.concat(chunks) : undefined,
  });
}

async function observe(request, handle, journal) {
  const entry = journal.begin({ direction: "in", ...describe(request.method, request.url, request.headers) });
  if (request.method === "POST") {
    const id = await request.clone().json().then((activity) => activity?.id, () => undefined);
    if (id) journal.arrived(id, entry);
  }
  return journal.within(entry, async (scene) => {
    try {
      const response = await handle(request);
      entry.status = response.status;
      return response;
    } catch {
      // Fedify logs and throws, for example, if it cannot load a JSON-LD context. Web frameworks
      // then answer 500.
      entry.status = 500;
      return new Response("Internal server error.", { status: 500 });
    } finally {
      if (entry.status >= 400) entry.why = scene.why;
    }
  });
}

// observedFetch replaces the global fetch, which Fedify uses.
async function observedFetch(input, init, journal) {
  let url = new URL(input instanceof Request ? input.url : input);
  if (!(input instanceof Request) && url.protocol === "https:" && url.hostname === "127.0.0.1") {
    // Fedify looks up a handle by WebFinger over https only. Test servers have no certificate.
    url = new URL(url.href.replace(/^https/, "http"));
    input = url;
  }
  const headers = new Headers(init?.headers ?? input.headers);
  const method = init?.method ?? input.method ?? "GET";
  const entry = journal.begin({ direction: "out", ...describe(method, url.href, headers) });
  try {
    const response = await plainFetch(input, init);
    entry.status = response.status;
    return response;
  } catch (error) {
    entry.error = String(error.cause ?? error);
    throw error;
  }
}

function describe(method, url, headers) {
  const { pathname, search } = new URL(url);
  const [signature, keyId] = signatureOf(headers);
  return {
    method,
    url,
    path: pathname + search,
    signature,
    keyId,
    accept: headers.get("accept") ?? undefined,
    contentType: headers.get("content-type") ?? undefined,
  };
}

// signatureOf decides as Fedify does: a request with Signature-Input is signed by RFC 9421, even
// if it has other signature headers.
function signatureOf(headers) {
  const input = headers.get("signature-input");
  if (input) return ["rfc9421", /;\s*keyid="([^"]*)"/i.exec(input)?.[1]];
  const cavage = headers.get("signature");
  if (cavage) return ["draft-cavage-http-signatures-12", /(?:^|,)\s*keyId="([^"]*)"/i.exec(cavage)?.[1]];
  return ["none", undefined];
}
