// Cuts a process from all others with iptables, in both directions. The process keeps running. Requires root and
// cgroup v2.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const run = (program: string, args: readonly string[]) => execFileSync(program, args, { encoding: 'utf8' });

function findCgroupRoot(): string {
  const root = /^\S+ (\S+) cgroup2 /m.exec(readFileSync('/proc/mounts', 'utf8'))?.[1];
  if (root === undefined) throw new Error('no cgroup v2 is mounted, so a process cannot be cut from the network');
  return root;
}

/** Returns the local ports of the sockets of a process. */
function readPorts(pid: number): string[] {
  const lines = run('ss', ['-Hatnp']).split('\n');
  const own = lines.filter((line) => line.includes(`pid=${pid},`));
  return [...new Set(own.flatMap((line) => /:(\d+)$/.exec(line.trim().split(/\s+/)[3] ?? '')?.[1] ?? []))];
}

/** @returns a function that restores the network */
export function cutFromNetwork(pid: number): () => void {
  const root = findCgroupRoot();
  const before = /^0::(.*)$/m.exec(readFileSync(`/proc/${pid}/cgroup`, 'utf8'))?.[1] ?? '/';
  const name = `playline-cut-${pid}`;
  mkdirSync(join(root, name));
  // The cgroup matches only sockets that are created later, and the ports match the sockets that exist.
  writeFileSync(join(root, name, 'cgroup.procs'), String(pid));
  const ports = readPorts(pid).flatMap((port) => ['--sport', '--dport'].map((end) => ['-p', 'tcp', end, port]));
  const rules = [['-m', 'cgroup', '--path', name], ...ports].map((match) => ['-o', 'lo', ...match, '-j', 'DROP']);
  let isCut = true;
  const restore = () => {
    if (!isCut) return;
    isCut = false;
    process.off('exit', restore);
    for (const rule of rules) run('iptables', ['-w', '-D', 'OUTPUT', ...rule]);
    writeFileSync(join(root, before, 'cgroup.procs'), String(pid));
    rmdirSync(join(root, name));
  };
  process.once('exit', restore);
  for (const rule of rules) run('iptables', ['-w', '-I', 'OUTPUT', ...rule]);
  return restore;
}
