import { readFileSync } from 'node:fs';
import type { ServiceProcess } from '../../faults/world/service-process.ts';

/** What `/readyz` answers. */
export interface Readiness {
  ready: boolean;
  reasons?: Record<string, string>;
}

export async function readinessOf(service: ServiceProcess): Promise<Readiness> {
  const answer = await fetch(`${service.adminUrl}/readyz`, { signal: AbortSignal.timeout(3_000) });
  return (await answer.json()) as Readiness;
}

/** Lines of a log that say a sentence, and all that the process shows to anybody. */
export async function shownBy(service: ServiceProcess): Promise<{ lines: string[]; all: string }> {
  const log = readFileSync(service.logFile, 'utf8');
  const answers = ['/metrics', '/readyz'].map(async (path) => (await fetch(service.adminUrl + path)).text());
  return {
    lines: log.split('\n').filter((line) => line.includes('cannot be used')),
    all: log + (await Promise.all(answers)).join(),
  };
}
