import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { createBrowser, type TestBrowser } from '../../../services/portal/src/test/test-browser.ts';
import { groupOf } from '../consumer-process.ts';
import type { Bench } from '../figure.ts';
import { findFreePort } from '../free-port.ts';
import { openGateway, type Server } from '../gateway-servers.ts';
import { type Measured, openService, waitFor, waitUntilReady } from '../processes.ts';
import { openWriter } from '../writer-process.ts';
import { CHAIN, CONTRACTS } from './fill-chain.ts';

/** The portal as it is deployed, signed-in users, and the services that accept and store messages. */
export interface Scene {
  readonly portal: Server;
  readonly gateway: Server;
  readonly writer: Measured;
  /** Browser of an administrator. */
  readonly browser: TestBrowser;
  /** Browsers of further users who may watch the environment. Each user may watch on eight pages at a time. */
  readonly lookers: readonly TestBrowser[];
  readonly origin: string;
  readonly projectId: string;
  /** Name of the bench's environment in the project. */
  readonly environment: string;
  /** Path of an invitation that nobody takes. */
  readonly invitation: string;
  close(): Promise<void>;
}

const run = promisify(execFile);
const PASSWORD = randomBytes(16).toString('hex');

/** Runs a command of the operator. @returns its output */
async function operate({ environment }: Bench, args: readonly string[]): Promise<string> {
  const env = { PATH: process.env.PATH ?? '', ...environment };
  return (await run(process.execPath, ['services/operator/src/main.ts', ...args], { env })).stdout;
}

/**
 * Creates a project that contains the bench's environment. The id of an environment consists of the project's id and
 * the environment's own name.
 */
async function createProject(bench: Bench): Promise<{ projectId: string; environment: string }> {
  const at = bench.environmentId.lastIndexOf('-');
  const [projectId, environment] = [bench.environmentId.slice(0, at), bench.environmentId.slice(at + 1)];
  await operate(bench, ['projects', 'create', '--name', 'Bench', '--id', projectId]);
  const added = ['--project', projectId, '--name', environment, '--kind', 'production'];
  await operate(bench, ['projects', 'add-environment', ...added]);
  return { projectId, environment };
}

/** The environment's contracts, as far as they are filled in. */
async function linkContracts(bench: Bench, { projectId, environment }: { projectId: string; environment: string }) {
  const { big, backfilled, middles, smalls } = CONTRACTS;
  for (const contract of [big, backfilled, ...middles, ...smalls]) {
    const of = ['--project', projectId, '--environment', environment, '--chain', CHAIN, '--contract', contract];
    await operate(bench, ['collections', 'link', ...of, '--name', `Contract ${contract.slice(2, 8)}`]);
  }
}

async function openPortal(bench: Bench, gatewayPort: number): Promise<Server & { origin: string }> {
  const [port, adminPort] = [await findFreePort(), await findFreePort()];
  const portal = openService('portal', {
    ...bench.serviceEnvironment,
    HTTP_PORT: String(port),
    ADMIN_PORT: String(adminPort),
    PORTAL_SECRET: randomBytes(32).toString('hex'),
    WRITER_GROUP: groupOf(bench, 'event-writer'),
    GATEWAY_URL: `http://127.0.0.1:${gatewayPort}`,
  });
  await waitUntilReady(portal, adminPort);
  return { ...portal, port, origin: `http://localhost:${port}` };
}

/** Path of the link that an accounts command prints, once the link works. */
async function linkPath(bench: Bench, origin: string, args: readonly string[]): Promise<string> {
  const { link } = JSON.parse(await operate(bench, ['accounts', ...args, '--json', '--origin', origin]));
  const browser = createBrowser(origin);
  const { pathname, search } = new URL(link);
  // The portal learns of the command's change a moment later.
  await waitFor('the link leads in', async () => (await browser.get(pathname + search)).status === 200, {
    maxMs: LINK_WAIT_MAX_MS,
  });
  return pathname + search;
}

async function signIn(bench: Bench, origin: string, { name, args }: { name: string; args: readonly string[] }) {
  const path = await linkPath(bench, origin, args);
  const browser = createBrowser(origin);
  const person = { login: `${name}@example.com`, name, password: PASSWORD, repeated: PASSWORD };
  const { status, text } = await browser.submit(path, 'accept', person);
  if (status !== 303) throw new Error(`${name} was answered with ${status}: ${text.slice(0, 500)}`);
  return browser;
}

const LOOKING_ACCOUNTS = 7;
const LINK_WAIT_MAX_MS = 10_000;

const inviting = (name: string, projectId: string) => [
  ...['invite', '--name', name, '--project', projectId, '--role', 'analyst'],
];

async function signInLookers(bench: Bench, origin: string, projectId: string): Promise<TestBrowser[]> {
  const lookers: TestBrowser[] = [];
  for (let at = 0; at < LOOKING_ACCOUNTS; at++) {
    const name = `looker-${at}`;
    lookers.push(await signIn(bench, origin, { name, args: inviting(name, projectId) }));
  }
  return lookers;
}

/** @throws Error when a process does not become ready */
export async function openScene(bench: Bench): Promise<Scene> {
  const opened: Measured[] = [];
  const close = async () => {
    for (const process of opened.reverse()) await process.close();
  };
  try {
    const names = await createProject(bench);
    await linkContracts(bench, names);
    const writer = await openWriter(bench);
    opened.push(writer);
    const gateway = await openGateway(bench);
    opened.push(gateway);
    const portal = await openPortal(bench, gateway.port);
    opened.push(portal);
    const { origin } = portal;
    const browser = await signIn(bench, origin, { name: 'bench', args: ['link'] });
    const lookers = await signInLookers(bench, origin, names.projectId);
    const invitation = await linkPath(bench, origin, inviting('nobody', names.projectId));
    return { ...names, portal, gateway, writer, browser, lookers, invitation, origin, close };
  } catch (error) {
    await close();
    throw error;
  }
}
