import { randomBytes } from 'node:crypto';
import { createBrowser, type TestBrowser } from '../../../services/portal/src/test/test-browser.ts';
import type { Bench } from '../figure.ts';
import { operate } from '../open-bench.ts';
import type { Keep } from '../opened.ts';
import { waitFor } from '../processes.ts';
import { groupOf, startGateway, startService, startWriter } from '../services.ts';
import { CHAIN, CONTRACTS } from './fill.ts';

export type Scene = Awaited<ReturnType<typeof openScene>>;

const PASSWORD = randomBytes(16).toString('hex');
const VIEWING_ACCOUNTS = 2;
const LINK_WAIT_MAX_MS = 10_000;

async function createProject(bench: Bench): Promise<{ projectId: string; environment: string }> {
  const dash = bench.environmentId.lastIndexOf('-');
  const [projectId, environment] = [bench.environmentId.slice(0, dash), bench.environmentId.slice(dash + 1)];
  const project = ['--project', projectId];
  await operate(bench, ['projects', 'create', '--name', 'Bench', '--id', projectId]);
  await operate(bench, ['projects', 'add-environment', ...project, '--name', environment, '--kind', 'production']);
  const { big, backfilled, middles, smalls } = CONTRACTS;
  for (const contract of [big, backfilled, ...middles, ...smalls]) {
    const target = [...project, '--environment', environment, '--chain', CHAIN, '--contract', contract];
    await operate(bench, ['collections', 'link', ...target, '--name', `Contract ${contract.slice(2, 8)}`]);
  }
  return { projectId, environment };
}

/** Runs an accounts command and waits until the link that it prints works. @returns the link's path */
async function createLinkPath(bench: Bench, origin: string, args: readonly string[]): Promise<string> {
  const { link } = JSON.parse(await operate(bench, ['accounts', ...args, '--json', '--origin', origin]));
  const browser = createBrowser(origin);
  const { pathname, search } = new URL(link);
  // The portal loads the new account after a short delay.
  const isWorking = async () => (await browser.get(pathname + search)).status === 200;
  await waitFor('the link works', isWorking, { maxMs: LINK_WAIT_MAX_MS });
  return pathname + search;
}

async function signIn(bench: Bench, origin: string, { name, args }: { name: string; args: readonly string[] }) {
  const path = await createLinkPath(bench, origin, args);
  const browser = createBrowser(origin);
  const account = { login: `${name}@example.com`, name, password: PASSWORD, repeated: PASSWORD };
  const { status, text } = await browser.submit(path, 'accept', account);
  if (status !== 303) throw new Error(`signing in ${name} failed with status ${status}: ${text.slice(0, 500)}`);
  return browser;
}

export async function openScene(bench: Bench, keep: Keep) {
  const names = await createProject(bench);
  const writer = keep(await startWriter(bench));
  const gateway = keep(await startGateway(bench));
  const settings = {
    PORTAL_SECRET: randomBytes(32).toString('hex'),
    WRITER_GROUP: groupOf(bench, 'event-writer'),
    GATEWAY_URL: `http://127.0.0.1:${gateway.port}`,
  };
  const portal = keep(await startService(bench, 'portal', settings));
  const origin = `http://localhost:${portal.port}`;
  const invite = (name: string) => ['invite', '--name', name, '--project', names.projectId, '--role', 'analyst'];
  const browser = await signIn(bench, origin, { name: 'bench', args: ['link'] });
  const viewers: TestBrowser[] = [];
  for (let index = 0; index < VIEWING_ACCOUNTS; index++)
    viewers.push(await signIn(bench, origin, { name: `viewer-${index}`, args: invite(`viewer-${index}`) }));
  const invitation = await createLinkPath(bench, origin, invite('unused'));
  return { ...names, portal, gateway, writer, browser, viewers, invitation, origin };
}
