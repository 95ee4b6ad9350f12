import { createHmac, timingSafeEqual } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import type { ProjectRecord } from '@playline/access-keys';
import { type AlertChange, type PendingDelivery, toChange } from '@playline/alerts';
import { createAuthority } from '@playline/infra/local';
import { testStackFolder } from '@playline/testkit';
import { expect, it, onTestFinished } from 'vitest';
import { createAlertDelivery, type DeliveryParts } from './delivery.ts';
import { openMailReceiver, openWebhookReceiver, type ReceivedWebhook } from './test/receivers.ts';

const NEVER = new AbortController().signal;
const FIRED_AT = Date.parse('2026-11-20T10:00:00Z');
const finding = { rule: 'NoMessages', projectId: 'demo', environmentId: 'demo-live', value: 7, text: 'None.' } as const;
const change = toChange('fired', finding, { firedAt: FIRED_AT, changedAt: FIRED_AT });
const webhookOf = (change: AlertChange): PendingDelivery => ({ channel: 'webhook', change, failure: null });
const toWebhook = webhookOf(change);
const toEmail = { ...toWebhook, channel: 'e-mail' } as const;

const toProject = (alertWebhook: string, alertEmails: string[] = []) =>
  ({
    id: 'demo',
    name: 'A game',
    environments: [{ id: 'demo-live', name: 'live' }],
    alertWebhook,
    alertEmails,
  }) as unknown as ProjectRecord;

function createDelivery(config: Partial<DeliveryParts['config']> = {}) {
  const settings = { PORTAL_SECRET: Buffer.alloc(32, 1), ALERT_PRIVATE_WEBHOOKS: true, ...config };
  return createAlertDelivery({ config: settings, origin: new URL('https://portal.example'), pausesMs: [1, 1] });
}

/** The verification in the README of the portal. */
function verify({ headers, body }: ReceivedWebhook, signingKey: string): boolean {
  const header = String(headers['playline-signature']);
  const [, seconds = ''] = /^t=(\d+),/.exec(header) ?? [];
  const expected = createHmac('sha256', signingKey).update(`${seconds}.${body}`).digest();
  const signatures = [...header.matchAll(/v1=([0-9a-f]{64})/g)].map(([, text = '']) => Buffer.from(text, 'hex'));
  const isValid = signatures.some((signature) => timingSafeEqual(expected, signature));
  const isRecent = Math.abs(Date.now() / 1000 - Number(seconds)) < 300;
  return isValid && isRecent;
}

it('a webhook contains the alert, and its receiver can verify the signature with the key that the page shows', async () => {
  const { received, port } = await openWebhookReceiver();
  const delivery = createDelivery();
  const cleared = toChange('cleared', finding, { firedAt: FIRED_AT, changedAt: FIRED_AT + 90_000 });
  const project = toProject(`http://127.0.0.1:${port}/hook?token=7`);
  expect(await delivery.deliver(webhookOf(cleared), project, NEVER)).toBeNull();
  const { headers, body } = received[0]!;
  expect(JSON.parse(body)).toEqual({
    id: cleared.id,
    state: 'cleared',
    rule: 'NoMessages',
    severity: 'critical',
    summary: expect.stringContaining('no messages'),
    text: 'None.',
    value: 7,
    project: { id: 'demo', name: 'A game' },
    environment: { id: 'demo-live', name: 'live' },
    firedAt: '2026-11-20T10:00:00.000Z',
    changedAt: '2026-11-20T10:01:30.000Z',
    url: 'https://portal.example/projects/demo/alerts',
  });
  expect(verify({ headers, body }, delivery.keyOf(project))).toBe(true);
  expect(verify({ headers, body }, delivery.keyOf({ ...project, id: 'demo-2' }))).toBe(false);
});

it('a webhook is signed with the newest key, and for 24 hours with the keys that it replaced', async () => {
  const { received, port } = await openWebhookReceiver();
  const delivery = createDelivery();
  const createdAt = [30, 25, 23, 1].map((hours) => Date.now() - hours * 3_600_000);
  const toKeys = (count: number) => ({
    ...toProject(`http://127.0.0.1:${port}`),
    alertKeys: createdAt.slice(0, count),
  });
  const keys = [0, 1, 2, 3, 4].map((count) => delivery.keyOf(toKeys(count)));
  const signedBy = async (count: number) => {
    await delivery.deliver(toWebhook, toKeys(count), NEVER);
    return [...keys.keys()].filter((index) => verify(received.at(-1)!, keys[index]!));
  };
  expect([await signedBy(0), await signedBy(2)]).toEqual([[0], [2]]);
  expect([await signedBy(3), await signedBy(4)]).toEqual([
    [2, 3],
    [2, 3, 4],
  ]);
});

it('a webhook is attempted three times, and its failure is reported without the URL', async () => {
  const failing = await openWebhookReceiver(() => 503);
  const delivery = createDelivery();
  const toPort = (port: number) => toProject(`http://127.0.0.1:${port}/the-secret`);
  const reported = await delivery.deliver(toWebhook, toPort(failing.port), NEVER);
  expect([reported, failing.received.length]).toEqual(['status 503', 3]);
  const recovering = await openWebhookReceiver((request) => (request < 3 ? 0 : 200));
  expect(await delivery.deliver(toWebhook, toPort(recovering.port), NEVER)).toBeNull();
  expect(recovering.received).toHaveLength(3);
  const one = await openWebhookReceiver(() => 500);
  expect(await delivery.test(change, toPort(one.port))).toMatchObject([{ reason: 'status 500' }]);
  expect(one.received).toHaveLength(1);
});

it('a delivery is not attempted again after the process has begun to exit', async () => {
  const failing = await openWebhookReceiver(() => 503);
  const project = toProject(`http://127.0.0.1:${failing.port}`);
  expect(await createDelivery().deliver(toWebhook, project, AbortSignal.abort())).toBe('status 503');
  expect(failing.received).toHaveLength(1);
});

it('a redirect is a failure and is not followed', async () => {
  const { received, port } = await openWebhookReceiver(() => 302);
  const failures = await createDelivery().test(change, toProject(`http://127.0.0.1:${port}`));
  expect([failures, received.length]).toEqual([[{ channel: 'webhook', reason: 'status 302' }], 1]);
});

it.each([
  '127.0.0.1',
  'localhost',
  '[::1]',
  '[::ffff:127.0.0.1]',
  '2130706433',
  '0.0.0.0',
  '[::]',
  '0x7f.1',
  'localhost.',
])('a webhook to this machine under the name %s is refused when the portal connects', async (host) => {
  const { received, port } = await openWebhookReceiver();
  const delivery = createDelivery({ ALERT_PRIVATE_WEBHOOKS: false });
  const [failure] = await delivery.test(change, toProject(`http://${host}:${port}`));
  // Some systems do not resolve a name with a trailing dot.
  const reasons = ['the address is not public', 'ENOTFOUND', 'EAI_AGAIN'].slice(0, host === 'localhost.' ? 3 : 1);
  expect(reasons).toContain(failure?.reason);
  expect(received).toEqual([]);
});

it.each([
  '10.1.2.3',
  '100.64.0.1',
  '169.254.169.254',
  '172.31.0.1',
  '192.168.0.1',
  '[fd00::1]',
  '[fe80::1]',
  '[64:ff9b::a00:1]',
  '168.63.129.16',
  '[2002:a00:1::1]',
  '[64:ff9b:1::a00:1]',
  '[::10.0.0.1]',
])('a webhook to the private address %s is refused', async (host) => {
  const delivery = createDelivery({ ALERT_PRIVATE_WEBHOOKS: false });
  const failures = await delivery.test(change, toProject(`https://${host}/`));
  expect(failures).toEqual([{ channel: 'webhook', reason: 'the address is not public' }]);
});

it('a webhook is not sent to a server whose certificate is not trusted', async () => {
  const folder = testStackFolder('webhook-certificate');
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { certificate, key } = createAuthority(folder, 'unknown authority').issue('server', ['localhost']);
  const files = { cert: readFileSync(certificate), key: readFileSync(key) };
  const { received, port } = await openWebhookReceiver(() => 200, files);
  const [failure] = await createDelivery().test(change, toProject(`https://localhost:${port}`));
  expect([failure?.reason, received]).toEqual([expect.stringMatching(/CERT|SIGNATURE/), []]);
});

it('an e-mail is sent to all addresses, and its subject contains no line break from a project name', async () => {
  const { received, port } = await openMailReceiver();
  const delivery = createDelivery({ SMTP_URL: `smtp://127.0.0.1:${port}`, SMTP_FROM: 'Playline <alerts@example.com>' });
  const project = {
    ...toProject('', ['ada@example.com', 'grace@example.com']),
    name: 'Game\r\nBcc: other@example.com',
  };
  expect(await delivery.deliver(toEmail, project, NEVER)).toBeNull();
  const [{ commands, text } = { commands: [], text: '' }] = received;
  const recipients = commands.filter((line) => line.startsWith('RCPT'));
  expect(recipients).toEqual(['RCPT TO:<ada@example.com>', 'RCPT TO:<grace@example.com>']);
  expect(text).toContain('From: Playline <alerts@example.com>');
  expect(text).toMatch(/^Subject: critical: NoMessages in Game/m);
  expect(text).not.toMatch(/^Bcc:/m);
  expect(text).toContain('https://portal.example/projects/demo/alerts');
});

it('the failure of an e-mail is reported by its codes, without an address or the password', async () => {
  const { port } = await openMailReceiver({ refuses: 'MAIL' });
  const delivery = createDelivery({ SMTP_URL: `smtp://127.0.0.1:${port}`, SMTP_FROM: 'alerts@example.com' });
  const failures = await delivery.test(change, toProject('', ['ada@example.com']));
  expect(failures).toEqual([{ channel: 'e-mail', reason: 'EENVELOPE 550' }]);
});

it('a password is not sent to an SMTP server without encryption', async () => {
  const { sent, port } = await openMailReceiver();
  const SMTP_URL = `smtp://user:password@127.0.0.1:${port}`;
  const delivery = createDelivery({ SMTP_URL, SMTP_FROM: 'alerts@example.com' });
  const failures = await delivery.test(change, toProject('', ['ada@example.com']));
  expect(failures).toEqual([{ channel: 'e-mail', reason: 'ETLS 550' }]);
  expect(sent).toEqual([expect.stringMatching(/^EHLO/), 'STARTTLS']);
});

it('an e-mail that some recipients refuse is reported with their number, and not sent again to the others', async () => {
  const { received, port } = await openMailReceiver({ refuses: 'RCPT TO:<grace' });
  const delivery = createDelivery({ SMTP_URL: `smtp://127.0.0.1:${port}`, SMTP_FROM: 'alerts@example.com' });
  const project = toProject('', ['ada@example.com', 'grace@example.com']);
  expect(await delivery.deliver(toEmail, project, NEVER)).toBe('1 of 2 recipients refused');
  expect(received).toHaveLength(1);
});

it('without SMTP settings, only webhooks are delivered', async () => {
  const delivery = createDelivery();
  expect(delivery.hasEmail).toBe(false);
  expect(await delivery.deliver(toEmail, toProject('', ['ada@example.com']), NEVER)).toBeNull();
});
