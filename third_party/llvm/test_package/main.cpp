// mlir-to-ptx: a module in the LLVM and NVVM dialects to PTX, built outside of LLVM's tree.
//
//   mlir-to-ptx kernel.mlir sm_90a +ptx80 > kernel.ptx
//   mlir-to-ptx --parse kernel.mlir          prints the module, canonicalized: all that there is without NVPTX

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/raw_ostream.h"
#if WITH_NVPTX
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"

// Only NVPTX: initializing every back end would ask for those that were not built.
extern "C" void LLVMInitializeNVPTXTargetInfo();
extern "C" void LLVMInitializeNVPTXTarget();
extern "C" void LLVMInitializeNVPTXTargetMC();
extern "C" void LLVMInitializeNVPTXAsmPrinter();
#endif

#include <memory>
#include <string>

static int fail(const llvm::Twine &message) {
  llvm::errs() << "mlir-to-ptx: " << message << "\n";
  return 1;
}

#if WITH_NVPTX
static int lower(mlir::ModuleOp module, llvm::StringRef chip, llvm::StringRef features) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();

  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> ir = mlir::translateModuleToLLVMIR(module, context, "kernels");
  if (!ir)
    return fail("no translation to LLVM IR");

  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return fail(error);
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, chip, features, llvm::TargetOptions(), std::nullopt));
  ir->setTargetTriple(triple);
  ir->setDataLayout(machine->createDataLayout());

  llvm::SmallString<0> ptx;
  llvm::raw_svector_ostream stream(ptx);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return fail("the NVPTX back end writes no assembly");
  passes.run(*ir);
  llvm::outs() << ptx;
  return 0;
}
#endif

int main(int argc, char **argv) {
  const bool parse = argc == 3 && llvm::StringRef(argv[1]) == "--parse";
  if (!parse && argc != 4)
    return fail("usage: mlir-to-ptx FILE CHIP FEATURES, or mlir-to-ptx --parse FILE");

  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect>();
#if WITH_NVPTX
  registry.insert<mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect>();
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
#endif
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceFile<mlir::ModuleOp>(parse ? argv[2] : argv[1], &context);
  if (!module)
    return 1; // the parser has said why

  mlir::PassManager passes(&context);
  passes.addPass(mlir::createCanonicalizerPass());
  if (mlir::failed(passes.run(*module)))
    return fail("canonicalization failed");
  if (parse) {
    module->print(llvm::outs());
    return 0;
  }
#if WITH_NVPTX
  return lower(*module, argv[2], argv[3]);
#else
  return fail("this LLVM was built without NVPTX");
#endif
}
