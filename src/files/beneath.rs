//! Opens files without blocking on a FIFO or a device, and without leaving a folder.

pub(super) use system::*;

use std::path::Path;

/// Maximum length of a path in bytes: checking each part of a longer one would take too long.
const LONGEST: usize = 4096;

/// Whether a part of the path is a link. On Unix this only explains why a file was not opened.
pub(crate) fn is_link(folder: &Path, relative: &Path) -> bool {
    let mut path = folder.to_path_buf();
    relative.as_os_str().len() <= LONGEST
        && relative.components().any(|part| {
            path.push(part);
            path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink())
        })
}

#[cfg(unix)]
mod system {
    use rustix::fs::{CWD, Mode, OFlags, open as open_at_once, openat};
    use std::fs::{File, Metadata};
    use std::io;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Component, Path};

    const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

    /// Opens a path that the caller gave.
    pub(in super::super) fn open_any(path: &Path) -> io::Result<File> {
        Ok(File::from(open_at_once(path, FLAGS, Mode::empty())?))
    }

    /// Opens a file beneath a folder, without following links below it.
    pub(in super::super) fn open(folder: &Path, relative: &Path) -> io::Result<File> {
        let folder = openat(CWD, folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{ResolveFlags, openat2};
            use rustix::io::Errno;
            let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match openat2(&folder, relative, FLAGS, Mode::empty(), how) {
                Ok(file) => return Ok(File::from(file)),
                // Old kernels don't have it; some sandboxes forbid it.
                Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            }
        }
        part_by_part(folder, relative)
    }

    /// Opens one folder after the other; fails if one is a link.
    pub(super) fn part_by_part(mut folder: rustix::fd::OwnedFd, relative: &Path) -> io::Result<File> {
        let mut parts = relative.components().filter(|part| *part != Component::CurDir).peekable();
        while let Some(part) = parts.next() {
            let Component::Normal(name) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
            let flags = FLAGS | OFlags::NOFOLLOW;
            if parts.peek().is_none() {
                return Ok(File::from(openat(&folder, name, flags, Mode::empty())?));
            }
            folder = openat(&folder, name, flags | OFlags::DIRECTORY, Mode::empty())?;
        }
        Err(io::ErrorKind::InvalidInput.into())
    }

    pub(in super::super) fn links(metadata: &Metadata) -> u64 {
        metadata.nlink()
    }
}

/// Without folder handles: checks each part of the path first.
#[cfg(not(unix))]
mod system {
    use std::fs::{File, Metadata};
    use std::io;
    use std::path::Path;

    pub(in super::super) fn open_any(path: &Path) -> io::Result<File> {
        File::open(path)
    }

    pub(in super::super) fn open(folder: &Path, relative: &Path) -> io::Result<File> {
        if relative.as_os_str().len() > super::LONGEST || super::is_link(folder, relative) {
            return Err(io::Error::other("it is behind a link, or its path is too long"));
        }
        File::open(folder.join(relative))
    }

    pub(in super::super) fn links(_: &Metadata) -> u64 {
        1
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn part_by_part_as_at_once() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        std::fs::write(folder.path().join("in/a"), "x").unwrap();
        std::os::unix::fs::symlink("in", folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("a", folder.path().join("in/link")).unwrap();
        let by_parts = |path: &str| {
            let handle = rustix::fs::open(folder.path(), rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty());
            part_by_part(handle.unwrap(), Path::new(path)).is_ok()
        };
        for (path, good) in
            [("in/a", true), ("./in/./a", true), ("link/a", false), ("in/link", false), ("no", false), ("../x", false)]
        {
            assert_eq!(by_parts(path), good, "{path}");
            assert_eq!(open(folder.path(), Path::new(path)).is_ok(), good, "{path}");
        }
    }
}
