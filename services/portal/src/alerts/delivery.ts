/** Delivers alerts of projects by webhook and e-mail. */
import { createHmac } from 'node:crypto';
import { request } from 'node:http';
import { request as requestTls } from 'node:https';
import { type BlockList, connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { alertKeysOf, alertTargetsOf, type ProjectRecord } from '@playline/access-keys';
import {
  ALERT_CHANNELS,
  type AlertChange,
  type AlertChannel,
  findProjectRule,
  type PendingDelivery,
} from '@playline/alerts';
import { pause } from '@playline/stores';
import type { Transporter } from 'nodemailer';
import { projectPath } from '../frame/layout.ts';
import { createNonPublic } from './non-public.ts';

export interface FailedTest {
  readonly channel: AlertChannel;
  readonly reason: string;
}

export interface AlertDelivery {
  /** False without SMTP_URL. */
  readonly hasEmail: boolean;
  /** The newest key that signs the webhooks of a project. */
  keyOf(project: ProjectRecord): string;
  /**
   * Attempts a delivery three times, or until `closed` is aborted. Returns why the last attempt failed, without the URL or an
   * address. Returns null if the delivery succeeded, or if the project has no such channel.
   */
  deliver(delivery: PendingDelivery, project: ProjectRecord, closed: AbortSignal): Promise<string | null>;
  /** Attempts a delivery to each channel once. */
  test(change: AlertChange, project: ProjectRecord): Promise<FailedTest[]>;
}

export interface DeliveryParts {
  readonly config: {
    readonly PORTAL_SECRET: Buffer;
    readonly SMTP_URL?: string | undefined;
    readonly SMTP_FROM?: string | undefined;
    readonly ALERT_PRIVATE_WEBHOOKS: boolean;
  };
  readonly origin: URL;
  /** Pauses between attempts; defaults to `PAUSES_MS`. */
  readonly pausesMs?: readonly number[];
}

/** A receiver that restarts is back after the second pause. */
const PAUSES_MS = [1_000, 10_000];
const ATTEMPT_MAX_MS = 5_000;

export function createAlertDelivery({ config, origin, pausesMs = PAUSES_MS }: DeliveryParts): AlertDelivery {
  const keysOf = (project: ProjectRecord) =>
    alertKeysOf(project, Date.now()).map((createdAt) => {
      const name = createdAt === 0 ? project.id : `${project.id} ${createdAt}`;
      return createHmac('sha256', config.PORTAL_SECRET).update(`alert webhook ${name}`).digest('hex');
    });
  const sendMail = createSendMail(config);
  /** Returns null if the project has no such channel. */
  const toSend = (channel: AlertChannel, change: AlertChange, project: ProjectRecord) => {
    const { alertWebhook, alertEmails } = alertTargetsOf(project);
    const message = toMessage(change, project, origin);
    if (channel === 'e-mail') return alertEmails.length > 0 && sendMail ? () => sendMail(alertEmails, message) : null;
    if (channel !== 'webhook' || alertWebhook === '') return null;
    return () =>
      postSigned(new URL(alertWebhook), JSON.stringify(message), {
        keys: keysOf(project),
        blockList: config.ALERT_PRIVATE_WEBHOOKS ? undefined : createNonPublic(),
      });
  };
  const attempt = async (send: () => Promise<void>, pauses: readonly number[], closed?: AbortSignal) => {
    for (let count = 0; ; count++) {
      const fault = await send().then(
        () => null,
        (error: unknown) => error,
      );
      if (fault === null) return null;
      const pauseMs = fault instanceof RefusedFault ? undefined : pauses[count];
      if (pauseMs !== undefined) await pause(pauseMs, closed);
      if (pauseMs === undefined || closed?.aborted) return toReason(fault);
    }
  };
  return {
    hasEmail: sendMail !== null,
    keyOf: (project) => keysOf(project)[0]!,
    deliver: async ({ channel, change }, project, closed) => {
      const send = toSend(channel, change, project);
      return send && attempt(send, pausesMs, closed);
    },
    test: async (change, project) => {
      const tests = ALERT_CHANNELS.map(async (channel) => {
        const send = toSend(channel, change, project);
        const reason = send && (await attempt(send, []));
        return reason === null ? [] : [{ channel, reason }];
      });
      return (await Promise.all(tests)).flat();
    },
  };
}

type AlertMessage = ReturnType<typeof toMessage>;

/** The body of a webhook. */
function toMessage(change: AlertChange, { id, name, environments }: ProjectRecord, origin: URL) {
  const environment = environments.find((each) => each.id === change.environmentId);
  const { summary = 'A test of the delivery', severity = 'warning' } = findProjectRule(change.rule) ?? {};
  return {
    id: change.id,
    state: change.state,
    rule: change.rule,
    severity,
    summary,
    text: change.text,
    value: change.value,
    project: { id, name },
    environment: { id: change.environmentId, name: environment?.name ?? '' },
    firedAt: new Date(change.firedAt).toISOString(),
    changedAt: new Date(change.changedAt).toISOString(),
    url: `${origin.origin}${projectPath(id)}/alerts`,
  };
}

interface PostOptions {
  readonly keys: readonly string[];
  readonly blockList: BlockList | undefined;
}

/** Redirects are not followed, and the response body is not read. @throws Error unless the status is 2xx */
function postSigned(url: URL, body: string, { keys, blockList }: PostOptions): Promise<void> {
  const sentAtMs = Date.now();
  const seconds = Math.floor(sentAtMs / 1000);
  const signatures = keys.map((key) => `v1=${createHmac('sha256', key).update(`${seconds}.${body}`).digest('hex')}`);
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'user-agent': 'Playline',
    'playline-signature': [`t=${seconds}`, ...signatures].join(','),
  };
  const signal = AbortSignal.timeout(ATTEMPT_MAX_MS);
  const options = { method: 'POST', headers, signal, createConnection: () => openConnection(url, blockList) };
  return new Promise((resolve, reject) => {
    const outgoing = (url.protocol === 'https:' ? requestTls : request)(url, options, (response) => {
      response.destroy();
      const { statusCode = 0 } = response;
      if (statusCode >= 200 && statusCode < 300) resolve();
      else reject(new StatusFault(`status ${statusCode}`));
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** Node.js applies a block list only to TCP connections that are opened with it, not to those that `https` opens. */
function openConnection({ protocol, hostname, port }: URL, blockList: BlockList | undefined): Socket {
  const host = hostname.replace(/^\[|\]$/g, '');
  const defaultPort = protocol === 'https:' ? 443 : 80;
  const socket = connect({ host, port: port === '' ? defaultPort : Number(port), ...(blockList && { blockList }) });
  if (protocol !== 'https:') return socket;
  return connectTls({ socket, host, ...(isIP(host) === 0 && { servername: host }) });
}

class StatusFault extends Error {}

/** Some recipients refused an e-mail. The others have received it. */
class RefusedFault extends Error {}

function createSendMail({ SMTP_URL: url, SMTP_FROM: from }: DeliveryParts['config']) {
  if (url === undefined || from === undefined) return null;
  let transport: Promise<Transporter> | null = null;
  const { protocol, username } = new URL(url);
  // Otherwise, an attacker in between can suppress STARTTLS and read the password.
  const requireTLS = protocol === 'smtp:' && username !== '';
  const names = ['dnsTimeout', 'connectionTimeout', 'greetingTimeout', 'socketTimeout'];
  const limits = Object.fromEntries(names.map((name) => [name, ATTEMPT_MAX_MS]));
  return async (to: readonly string[], message: AlertMessage): Promise<void> => {
    // The module is loaded only if e-mail is used.
    transport ??= import('nodemailer').then(({ createTransport }) => createTransport({ url, requireTLS, ...limits }));
    const { state, severity, rule, summary, text, project, environment, firedAt, changedAt, url: page } = message;
    const subject = `${state === 'fired' ? severity : state}: ${rule} in ${project.name} ${environment.name}`.trim();
    const cleared = state === 'cleared' ? [`Cleared at ${changedAt}`] : [];
    const lines = [summary, '', text, '', `Fired at ${firedAt}`, ...cleared, page];
    const { rejected = [] } = await (await transport).sendMail({ from, to: [...to], subject, text: lines.join('\n') });
    if (rejected.length > 0) throw new RefusedFault(`${rejected.length} of ${to.length} recipients refused`);
  };
}

/** Messages of other errors may contain the URL, an address or a response. */
function toReason(fault: unknown): string {
  const { code, name, responseCode } = fault as { code?: unknown; name?: unknown; responseCode?: unknown };
  if (fault instanceof StatusFault || fault instanceof RefusedFault) return fault.message;
  if (code === 'ERR_IP_BLOCKED') return 'the address is not public';
  if (name === 'TimeoutError' || name === 'AbortError') return 'no response within 5 s';
  return [code ?? 'failed', responseCode].filter((each) => each !== undefined).join(' ');
}
