import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type JourneyStack, startJourneyStack } from '../journeys/stack.ts';
import type { BystanderTargets, Results } from './bystander.ts';

export type AttackWorld = Awaited<ReturnType<typeof startAttackWorld>>;

const BYSTANDER = fileURLToPath(new URL('./bystander.ts', import.meta.url));

/** Starts a whole stack with two projects: the demo project attacks, the bystander's project sends normal traffic. */
export async function startAttackWorld() {
  const journey = await startJourneyStack({ chain: true });
  const { stack, operate } = journey;
  let child: ChildProcess | null = null;
  const close = async () => {
    child?.kill();
    await journey.close();
  };
  try {
    const { gateway, chainApi, portal } = stack.file;
    const bystander = await createBystander(operate);
    const rateLimitArgs = ['--kind', 'rate-limit', '--partner', 'Bystander', '--calls', '100000', '--json'];
    const { key: rateLimitKey } = JSON.parse(await operate('keys', 'create', ...rateLimitArgs)) as { key: string };
    const publishableKey = bystander.publishable;
    const targets = { gateway, chainApi, portal, publishableKey, rateLimitKey } as BystanderTargets;
    child = fork(BYSTANDER, [JSON.stringify(targets)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    const running = child;
    return {
      stack,
      operate,
      query: journey.query,
      close,
      attacker: journey.keys.development,
      bystander,
      /** @returns the bystander's results since the last call */
      takeResults: async () => {
        running.send('report');
        return (await once(running, 'message'))[0] as Results;
      },
      memoryOf: (service: string) => {
        const status = readFileSync(`/proc/${stack.file.processes[service]}/status`, 'utf8');
        const read = (name: string) =>
          Math.round(Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]) / 1024);
        return { currentMb: read('VmRSS'), peakMb: read('VmHWM') };
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function createBystander(operate: JourneyStack['operate']) {
  await operate('projects', 'create', '--name', 'Bystander', '--id', 'bystander');
  const createKey = async (kind: string) => {
    const args = ['--project', 'bystander', '--environment', 'production', '--kind', kind, '--json'];
    return (JSON.parse(await operate('keys', 'create', ...args)) as { key: string }).key;
  };
  return { publishable: await createKey('publishable'), secret: await createKey('secret') };
}
