// Node 18 has no global `crypto`; browsers and later versions do.
import { webcrypto } from "node:crypto";

globalThis.crypto ??= webcrypto;
