import { parseAnalystAccounts, parseSignerPublicKey } from '@playline/access-keys';
import { chainNodes } from '@playline/chain';
import {
  clickhouseClusterSettings,
  clickhouseSettings,
  deploymentSettings,
  kafkaSettings,
  listenerSettings,
  processSettings,
  redisSettings,
  registrySettings,
  settings,
  tracingSettings,
} from '@playline/runtime';
import { z } from 'zod';

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/** Excludes `*`, which matches every host in a content security policy. */
const HOST = /^([a-z0-9.-]+|\[[0-9a-f:.]+\])$/;

function parseIssuer(text: string): URL {
  const url = URL.parse(text);
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK.includes(url.hostname));
  const isPlain = url?.search === '' && url.hash === '' && url.username === '';
  if (url === null || !isSafe || !isPlain || !HOST.test(url.hostname))
    throw new Error('expected an https URL without a query');
  return url;
}

function parseOrigins(text: string): string[] {
  return text.split(',').map((each) => {
    const url = parseIssuer(each.trim());
    if (url.pathname !== '/') throw new Error('expected comma-separated origins, such as https://id.example.com');
    return url.origin;
  });
}

/** Never quotes the URL, which contains a password. */
function parseSmtpUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^smtps?:$/.test(url.protocol) || url.hostname === '' || !/^\/?$/.test(url.pathname))
    throw new Error('expected smtp://user:password@host:587 or smtps://user:password@host:465');
  return text;
}

const schema = z.object({
  ...processSettings,
  ...tracingSettings,
  ...listenerSettings,
  HTTP_PORT: listenerSettings.HTTP_PORT.default(8084),
  ADMIN_PORT: processSettings.ADMIN_PORT.default(8085),
  /**
   * Origin under which the portal is reachable, such as `https://portal.example.com`; `localhost` by default. Passkeys
   * are bound to its host name.
   */
  PORTAL_ORIGIN: settings
    .baseUrl()
    .refine((url) => new URL(url).pathname === '/', 'expected a URL without a path')
    .optional(),
  /** Secret for signing forms and cookies; must be the same for all processes of a portal. */
  PORTAL_SECRET: settings.secretHex(32),
  /** Public key that encrypts signable keys for the signer; required for creating signable keys. */
  SIGNER_PUBLIC_KEY: settings.parsed(parseSignerPublicKey).optional(),
  ...kafkaSettings,
  ...registrySettings,
  ...redisSettings,
  ...clickhouseSettings,
  ...clickhouseClusterSettings,
  /** Password of the ClickHouse account `accounts`; required for database credentials on the Connect page. */
  CLICKHOUSE_ACCOUNTS_PASSWORD: settings.text().optional(),
  /** ClickHouse URL for analysts, which pages show; CLICKHOUSE_URL by default. */
  CLICKHOUSE_PUBLIC_URL: settings.baseUrl().optional(),
  /** Accounts in users.xml for a ClickHouse that cannot create accounts with SQL: `analyst_1=password,…`. */
  ANALYST_ACCOUNTS: settings.parsed(parseAnalystAccounts).optional(),
  IDENTITY_PEPPER: deploymentSettings.IDENTITY_PEPPER,
  ERASURE_CLOCK_SKEW_MS: deploymentSettings.ERASURE_CLOCK_SKEW_MS,
  WRITER_GROUP: deploymentSettings.WRITER_GROUP,
  ACCESS_KEY_PREFIX: deploymentSettings.ACCESS_KEY_PREFIX,
  CHAINS: deploymentSettings.CHAINS,
  /** Chains and the URLs of their nodes, as a JSON array. The portal checks that linked contracts exist. */
  CHAIN_NODES: chainNodes().default([]),
  HTTP_HEADER_PREFIX: deploymentSettings.HTTP_HEADER_PREFIX,
  /** Gateway URL for the commands that pages show. */
  GATEWAY_URL: settings.baseUrl().optional(),
  /** Chain API URL for the commands that pages show. */
  CHAIN_API_URL: settings.baseUrl().optional(),
  TRUSTED_PROXIES: settings.trustedProxies(),
  /** Issuer URL of an OpenID Connect provider; enables sign-in through the provider. */
  OPENID_ISSUER: settings.parsed(parseIssuer).optional(),
  /** Client id that the OpenID Connect provider issued to the portal. */
  OPENID_CLIENT_ID: settings.text().optional(),
  /** Client secret that the OpenID Connect provider issued to the portal. */
  OPENID_CLIENT_SECRET: settings.text().optional(),
  /** Name of the provider on the "Sign in with …" button. */
  OPENID_LABEL: settings.text().default('single sign-on'),
  /** Comma-separated list of additional provider origins for requests and redirects. */
  OPENID_ALSO_AT: settings.parsed(parseOrigins).optional(),
  /** URL of the SMTP server that sends alerts, with user and password; without it, alerts are sent only by webhook. */
  SMTP_URL: settings.parsed(parseSmtpUrl).optional(),
  /** Sender of the e-mails, such as `Playline <alerts@example.com>`. */
  SMTP_FROM: settings.text().optional(),
  /** Allows webhooks to private addresses. All owners of projects can then send requests to the network of the portal. */
  ALERT_PRIVATE_WEBHOOKS: z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .default(false),
});

export const configSchema = schema.superRefine((config, context) => {
  for (const [name, other] of [
    ['SMTP_URL', 'SMTP_FROM'],
    ['SMTP_FROM', 'SMTP_URL'],
  ] as const)
    if (config[name] === undefined && config[other] !== undefined)
      context.addIssue({ code: 'custom', path: [name], message: `required if ${other} is set` });
  const names = ['OPENID_ISSUER', 'OPENID_CLIENT_ID', 'OPENID_CLIENT_SECRET'] as const;
  const missing = names.filter((name) => config[name] === undefined);
  if (missing.length === names.length) return;
  for (const name of missing)
    context.addIssue({ code: 'custom', path: [name], message: 'required if any other OpenID setting is set' });
});

export type Config = z.infer<typeof configSchema>;

export function toOpenId(config: Config) {
  const { OPENID_ISSUER: issuer, OPENID_CLIENT_ID: clientId, OPENID_CLIENT_SECRET: clientSecret } = config;
  if (issuer === undefined || clientId === undefined || clientSecret === undefined) return null;
  return { issuer, clientId, clientSecret, label: config.OPENID_LABEL, additionalOrigins: config.OPENID_ALSO_AT ?? [] };
}

export type PortalSettings = ReturnType<typeof toSettings>;

export function toSettings(config: Config) {
  return {
    keyPrefix: config.ACCESS_KEY_PREFIX,
    signerKey: config.SIGNER_PUBLIC_KEY ?? null,
    // If null, contracts on any chain can be linked.
    servedChains: config.CHAINS ?? null,
    // Contracts on other chains are not checked.
    checkedChains: config.CHAIN_NODES.map(({ name }) => name),
    headerPrefix: config.HTTP_HEADER_PREFIX,
    gatewayUrl: config.GATEWAY_URL ?? 'http://127.0.0.1:8080',
    chainApiUrl: config.CHAIN_API_URL ?? 'http://127.0.0.1:8082',
    clickhouseUrl: config.CLICKHOUSE_PUBLIC_URL ?? config.CLICKHOUSE_URL,
  };
}
