/** The parties of the checks: the customer over both log transports, and a stranger. */
import { readFileSync } from "node:fs";
import { GraphQLClient } from "graphql-request";
import { createPublicClient, createWalletClient, defineChain, http, webSocket, type Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { GridClient } from "./client.js";
import type { Settings } from "./harness.js";
import { GrpcTransport, GrpcWebTransport, type LogTransport } from "./logs.js";

export const CREDIT = 10n ** 18n;

export class Parties {
  readonly grpc: GrpcTransport;
  readonly grpcWeb: GrpcWebTransport;
  readonly customer: GridClient;
  readonly browser: GridClient;
  readonly stranger: GridClient;
  readonly jobService: GraphQLClient;

  constructor(readonly settings: Settings) {
    const certificates = settings.grpcCertificates ? readFileSync(settings.grpcCertificates) : undefined;
    this.grpc = new GrpcTransport(settings.grpcTarget, certificates);
    this.grpcWeb = new GrpcWebTransport(settings.grpcWebUrl);
    this.jobService = new GraphQLClient(settings.graphqlUrl);
    this.customer = this.client(settings.keyFile, this.grpc);
    this.browser = this.client(settings.keyFile, this.grpcWeb);
    this.stranger = this.client(settings.strangerKeyFile, this.grpc);
  }

  /** A client with the key in this file. */
  client(keyFile: string, logs: LogTransport): GridClient {
    const { chainId, rpcUrl, wsUrl, metaScheduler } = this.settings;
    const chain = defineChain({
      id: chainId, name: "grid", nativeCurrency: { name: "Square", symbol: "SQUARE", decimals: 18 },
      rpcUrls: { default: { http: [rpcUrl], webSocket: [wsUrl] } },
    });
    const account = privateKeyToAccount(readFileSync(keyFile, "utf8").trim() as Hex);
    const wallet = createWalletClient({ account, chain, transport: http(rpcUrl) });
    const reader = createPublicClient({ chain, transport: http(rpcUrl), pollingInterval: 200 });
    const events = createPublicClient({ chain, transport: webSocket(wsUrl) });
    return new GridClient(wallet, logs, metaScheduler, this.jobService, reader, events);
  }
}
