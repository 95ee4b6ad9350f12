import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from './command.ts';
import { writePrivateFile } from './private-file.ts';

/** Paths of a certificate and its private key, both in PEM format. */
export interface CertificateFiles {
  readonly certificate: string;
  readonly key: string;
}

/** A certificate authority for one stack or test. */
export interface Authority {
  readonly certificate: string;
  /** Issues a server certificate for host names and IP addresses, or returns the existing one with that name. */
  issue(name: string, hosts: readonly string[]): CertificateFiles;
}

const VALID_DAYS = '30';
/** A key type that Java, Redis and Node support. */
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/** @throws Error with the output of openssl */
function runOpenssl(args: readonly string[]): void {
  const program = findProgram('openssl');
  if (program === null)
    throw new Error('openssl is not installed. Install it: a stack with TLS needs openssl to create certificates');
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'] });
  if (status !== 0) throw new Error(`openssl ${args[0]} failed: ${stderr.trim().split('\n').at(-1)}`);
}

/** Creates a certificate authority in a folder (mode 0700), or uses the existing authority. */
export function createAuthority(folder: string, commonName: string): Authority {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const [certificate, key] = [join(folder, 'authority.pem'), join(folder, 'authority.key')];
  const subject = ['-subj', `/CN=${commonName}`, '-days', VALID_DAYS];
  if (!existsSync(certificate)) {
    const uses = ['-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign'];
    runOpenssl(['req', '-x509', ...KEY, ...subject, ...uses, '-keyout', key, '-out', certificate]);
  }
  const issue: Authority['issue'] = (name, hosts) => {
    const files = { certificate: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) };
    if (existsSync(files.certificate)) return files;
    const names = hosts.map((host) => `${/^[\d.]+$/.test(host) ? 'IP' : 'DNS'}:${host}`).join();
    const request = join(folder, `${name}.csr`);
    runOpenssl(['req', ...KEY, '-subj', `/CN=${name}`, '-keyout', files.key, '-out', request]);
    const extensions = join(folder, `${name}.ext`);
    writePrivateFile(extensions, `subjectAltName=${names}\nbasicConstraints=critical,CA:FALSE\n`);
    const signedBy = ['-CA', certificate, '-CAkey', key, '-CAcreateserial', '-days', VALID_DAYS];
    runOpenssl(['x509', '-req', '-in', request, ...signedBy, '-extfile', extensions, '-out', files.certificate]);
    return files;
  };
  return { certificate, issue };
}

/** Returns the private key and the certificate in one PEM string, the format of a Java key store. */
export const toKeyStore = ({ certificate, key }: CertificateFiles): string =>
  readFileSync(key, 'utf8') + readFileSync(certificate, 'utf8');
