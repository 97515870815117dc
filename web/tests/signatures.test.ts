import { hashTypedData, hexToBytes, type Hex } from "viem";
import { describe, expect, test } from "vitest";
import signatures from "../../tests/web/vectors/signatures.json";
import texts from "../../tests/web/vectors/texts.json";
import { marked } from "../src/pure/clean";
import { exact, linedUp, parse } from "../src/pure/money";
import { definitionHash } from "../src/wallet/order";
import { REQUEST_TYPES, requestDigest } from "../src/wallet/services";
import { SESSION_TYPES } from "../src/wallet/session";

const bytes = (hex: string) => hexToBytes(`0x${hex}`);
const nonce = `0x${[...Array(32).keys()].map((byte) => byte.toString(16).padStart(2, "0")).join("")}` as Hex;

describe("the same results as Python", () => {
  test.each(signatures.requests)("digest of a request to $path", ({ path, body, at, digest }) => {
    const contract = signatures.contract as Hex;
    expect(requestDigest(signatures.chain_id, contract, "PUT", path, bytes(body), at, nonce)).toBe(`0x${digest}`);
  });

  test("types and digest of a session", () => {
    expect(SESSION_TYPES).toEqual(signatures.session_types);
    expect(REQUEST_TYPES).toEqual(signatures.request_types);
    const domain = { name: "deepgrid", version: "1", chainId: signatures.chain_id, verifyingContract: signatures.contract as Hex };
    const message = { ...signatures.session, publicKey: `0x${signatures.session.publicKey}` as Hex, notAfter: BigInt(signatures.session.notAfter) };
    const digest = hashTypedData({ domain, types: SESSION_TYPES, primaryType: "Session", message });
    expect(digest).toBe(`0x${signatures.session_digest}`);
  });

  test.each(texts.hashes)("hash of a definition", async ({ salt, content, hash }) => {
    expect(await definitionHash(bytes(salt), content)).toBe(hash);
  });

  test.each(texts.credits)("%s wei are %s credits", (wei, credits) => {
    expect(exact(BigInt(wei!))).toBe(credits);
    expect(parse(credits!)).toBe(BigInt(wei!));
  });

  test.each(texts.marked)("strangers' text %j", (text, cleaned) => expect(marked(text!)).toBe(cleaned));
});

test("amounts of a column get equally many decimals, and other texts stay", () => {
  expect(linedUp(["0.05", "0.0625", "12", "≈0.003", "–", ""])).toEqual(["0.0500", "0.0625", "12.0000", "≈0.0030", "–", ""]);
  expect(linedUp(["3", "14"])).toEqual(["3", "14"]);
});
