//! The table of the standard matches the onnx package, if that is installed. `PYTHON` names the interpreter; the default
//! is `python3`.

use anyhow::{Result, ensure};
use std::process::Command;

#[test]
fn the_table_is_what_the_onnx_package_says() -> Result<()> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_string());
    let version = Command::new(&python).args(["-c", "import onnx; print(onnx.__version__)"]).output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string()).unwrap_or_default();
    if version != "1.23.2" {
        println!("not compared: {python} has no onnx 1.23.2");
        return Ok(());
    }
    let check =
        Command::new(&python).args(["tools/export_standard.py", "--check", "src/schema/standard.txt"]).output()?;
    ensure!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    Ok(())
}
